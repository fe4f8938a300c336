"""
One pass over a stream
======================

``OnlineSVC`` learns from each sample once, and keeps support vectors only. Accuracy and memory as the stream goes on,
next to the batch machine that sees all samples at once.
"""

import matplotlib.pyplot as plt

from maxmargin import SVC, OnlineSVC
from maxmargin.datasets import chessboard

X, y = chessboard(4000, seed=0)
X_new, y_new = chessboard(2000, seed=1)
batch = SVC(C=1000, gamma=1.0).fit(X, y)
model, seen, accuracy, kept = OnlineSVC(C=1000, gamma=1.0), [], [], []
for start in range(0, 4000, 200):
    model.partial_fit(X[start : start + 200], y[start : start + 200])
    seen.append(start + 200)
    accuracy.append(model.score(X_new, y_new))
    kept.append(len(model.support_))

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
left.plot(seen, accuracy, "-o", color="#0072B2", label="OnlineSVC")
left.axhline(batch.score(X_new, y_new), color="#D55E00", linestyle="--", label="SVC on all samples")
left.set(xlabel="samples seen", ylabel="accuracy on new samples")
left.legend()
right.plot(seen, kept, "-o", color="#0072B2", label="OnlineSVC")
right.axhline(len(batch.support_), color="#D55E00", linestyle="--", label="SVC on all samples")
right.set(xlabel="samples seen", ylabel="support vectors")
right.legend()
