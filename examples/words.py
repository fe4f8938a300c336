"""A kernel of one's own, on words: English or Italian? The spectrum kernel counts pairs of letters in common."""

from collections import Counter

import numpy as np

from maxmargin import SVC

ENGLISH = ["through", "weather", "should", "knowledge", "thought", "whether", "bright", "yellow", "eight", "whole"]
ITALIAN = ["sole", "ragazzo", "bambino", "vecchio", "giornale", "mattina", "piazza", "finestra", "castello", "ponte"]


def pairs_of_letters(word: str) -> Counter[str]:
    padded = f"<{word}>"
    return Counter(padded[k : k + 2] for k in range(len(padded) - 1))


def spectrum_kernel(A, B) -> np.ndarray:
    left, right = [pairs_of_letters(word) for word in A], [pairs_of_letters(word) for word in B]
    return np.array([[sum(a[pair] * b[pair] for pair in a) for b in right] for a in left], dtype=float)


def main() -> None:
    words, language = ENGLISH + ITALIAN, ["English"] * len(ENGLISH) + ["Italian"] * len(ITALIAN)
    model = SVC(kernel=spectrum_kernel, C=10).fit(words, language)
    print(model.certificate_)
    for word in ["daughter", "sorella", "height", "gelato"]:
        print(f"{word:10} {model.predict([word])[0]}")


if __name__ == "__main__":
    main()
