"""A custom kernel on strings: the spectrum kernel of letter bigrams distinguishes English and Italian words."""

from collections import Counter

import numpy as np

from maxmargin import SVC

ENGLISH = ["through", "weather", "should", "knowledge", "thought", "whether", "bright", "yellow", "eight", "whole"]
ITALIAN = ["sole", "ragazzo", "bambino", "vecchio", "giornale", "mattina", "piazza", "finestra", "castello", "ponte"]


def bigrams(word: str) -> Counter[str]:
    padded = f"<{word}>"
    return Counter(padded[k : k + 2] for k in range(len(padded) - 1))


def spectrum_kernel(A, B) -> np.ndarray:
    left, right = [bigrams(word) for word in A], [bigrams(word) for word in B]
    return np.array([[sum(a[pair] * b[pair] for pair in a) for b in right] for a in left], dtype=float)


def main() -> None:
    words, language = ENGLISH + ITALIAN, ["English"] * len(ENGLISH) + ["Italian"] * len(ITALIAN)
    model = SVC(kernel=spectrum_kernel, C=10).fit(words, language)
    print(model.certificate_)
    for word in ["daughter", "sorella", "height", "gelato"]:
        print(f"{word:10} {model.predict([word])[0]}")


if __name__ == "__main__":
    main()
