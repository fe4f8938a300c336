"""
Labels of sequences
===================

Noisy digits that count upwards. A classifier of single images ignores the order; a structured one learns which digit
follows which, and reads the whole sequence at once.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from maxmargin import LinearSVC, StructuredSVC
from maxmargin.models import ChainModel

images, digits = load_digits(return_X_y=True)
random = np.random.default_rng(0)
noisy = images / 16 + random.normal(scale=0.6, size=images.shape)
rows = [random.permutation(np.flatnonzero(digits == digit)).tolist() for digit in range(10)]
sequences = [[rows[(start + t) % 10].pop() for t in range(8)] for start in random.integers(10, size=150)]
X, y = [noisy[of_one] for of_one in sequences], [digits[of_one] for of_one in sequences]

chain = StructuredSVC(ChainModel(), C=0.01).fit(X[:100], y[:100])
single = LinearSVC(C=0.01).fit(np.vstack(X[:100]), np.concatenate(y[:100]))
print(chain.certificate_)

figure, axes = plt.subplots(4, 8, figsize=(9, 5.4), layout="constrained")
for row, x, right in zip(axes, X[100:], y[100:], strict=False):
    for ax, image, truth, alone, together in zip(row, x, right, single.predict(x), chain.predict([x])[0], strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r")
        ax.set_title(f"{alone}", color="C3" if alone != truth else "C2", size=9)
        ax.set_xlabel(f"{together}", color="C3" if together != truth else "C2", labelpad=1, size=9)
        ax.set(xticks=[], yticks=[])
figure.suptitle(
    f"above: one by one, {single.score(np.vstack(X[100:]), np.concatenate(y[100:])):.0%} right; "
    f"below: in sequence, {chain.score(X[100:], y[100:]):.0%} right"
)
