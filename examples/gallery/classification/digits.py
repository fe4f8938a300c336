"""
Handwritten digits
==================

Images of 8 × 8 pixels, ten classes, forty-five binary models. The digits that are misclassified, with what they are
and what they were taken for.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from maxmargin import SVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
model = SVC(C=10, gamma=0.05).fit(X_train, y_train)
predicted = model.predict(X_test)
wrong = np.flatnonzero(predicted != y_test)[:10]
print(f"{np.mean(predicted == y_test):.1%} of {len(y_test)} new images are recognised")
gaps = [certificate.relative_gap for certificate in model.certificate_]
print(f"largest relative gap of the {len(gaps)} models: {max(gaps):.0e}")

figure, axes = plt.subplots(2, 5, figsize=(9, 4.3), layout="constrained")
for ax in axes.flat:
    ax.axis("off")
for ax, index in zip(axes.flat, wrong, strict=False):
    ax.imshow(X_test[index].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{y_test[index]}, predicted {predicted[index]}", fontsize="medium")
