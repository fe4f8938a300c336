"""
A stream within a limit of memory
=================================

With noisy labels the support vectors of an online machine grow with the stream. ``budget`` limits their number: the one
whose removal costs least is removed, and the most similar ones are optimised again. Too small a budget costs accuracy.
"""

import matplotlib.pyplot as plt

from maxmargin import OnlineSVC
from maxmargin.datasets import chessboard

X, y = chessboard(4000, noise=0.1, seed=0)
X_new, y_new = chessboard(2000, seed=1)
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
for budget, colour in ((None, "#26292e"), (300, "#0072B2"), (100, "#D55E00")):
    model, seen, accuracy, kept = OnlineSVC(C=10, gamma=1.0, budget=budget), [], [], []
    for start in range(0, 4000, 200):
        model.partial_fit(X[start : start + 200], y[start : start + 200])
        seen.append(model.n_samples_seen_)
        accuracy.append(model.score(X_new, y_new))
        kept.append(len(model.support_))
    left.plot(seen, accuracy, color=colour, linewidth=2, label=f"budget={budget}")
    right.plot(seen, kept, color=colour, linewidth=2)
left.set(xlabel="samples seen", ylabel="accuracy on new samples")
left.legend()
right.set(xlabel="samples seen", ylabel="support vectors")
