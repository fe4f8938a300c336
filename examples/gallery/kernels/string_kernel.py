"""
A kernel on strings
===================

The spectrum kernel counts common pairs of letters. With it, a support vector machine distinguishes English and Italian
words that it has never seen; the samples are lists of strings, and no features are computed.
"""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVC

ENGLISH = ["through", "weather", "should", "knowledge", "thought", "whether", "bright", "yellow", "eight", "whole"]
ITALIAN = ["sole", "ragazzo", "bambino", "vecchio", "giornale", "mattina", "piazza", "finestra", "castello", "ponte"]


def bigrams(word):
    """Count the pairs of letters of a word, its beginning and end included."""
    padded = f"<{word}>"
    return Counter(padded[k : k + 2] for k in range(len(padded) - 1))


def spectrum_kernel(A, B):
    """Return the number of common bigrams, one row per word of A, one column per word of B."""
    left, right = [bigrams(word) for word in A], [bigrams(word) for word in B]
    return np.array([[sum(a[pair] * b[pair] for pair in a) for b in right] for a in left], dtype=float)


words, language = ENGLISH + ITALIAN, ["English"] * len(ENGLISH) + ["Italian"] * len(ITALIAN)
model = SVC(kernel=spectrum_kernel, C=10).fit(words, language)
print(model.certificate_)
for word in ["daughter", "sorella", "height", "gelato"]:
    print(f"{word:10} {model.predict([word])[0]}")

# %%
# The kernel matrix: words of one language share more bigrams.
K = spectrum_kernel(words, words)
np.fill_diagonal(K, np.nan)
figure, ax = plt.subplots(figsize=(7, 6), layout="constrained")
image = ax.imshow(K, cmap="viridis")
ax.set_xticks(range(len(words)), words, rotation=90, fontsize="small")
ax.set_yticks(range(len(words)), words, fontsize="small")
figure.colorbar(image, label="common bigrams")
