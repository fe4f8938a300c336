r"""
5. Online learning
==================

A sample arrives, is learned from, and may be forgotten. From the perceptron to support vector machines that process a
stream.
"""

# %%
# The kernel perceptron
# ---------------------
#
# The oldest online learner predicts, and if it is wrong adds the sample to its expansion:
#
# .. math:: \text{if } \; y_t \, f(x_t) \leq 0 : \quad f \leftarrow f + y_t \, k(x_t, \cdot) .
#
# It needs no more than this, but it has no margin, no cost of errors, and it never removes anything.
import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVC, OnlineSVC
from maxmargin.datasets import chessboard

X, y = chessboard(3000, noise=0.02, seed=0)
X_new, y_new = chessboard(2000, seed=1)
signs, signs_new = np.where(y == 1, 1.0, -1.0), np.where(y_new == 1, 1.0, -1.0)
gamma, checks = 3.0, list(range(150, 3001, 150))


def kernel(A, B):
    """Return the Gaussian kernel of the rows of A and B."""
    return np.exp(-gamma * ((A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T))


stored, coefficients, perceptron = [], [], []
K, K_new = kernel(X, X), kernel(X_new, X)
for t in range(3000):
    if signs[t] * (K[t, stored] @ np.array(coefficients)) <= 0:
        stored.append(t)
        coefficients.append(signs[t])
    if t + 1 in checks:
        perceptron.append(np.mean(np.sign(K_new[:, stored] @ np.array(coefficients)) == signs_new))
print(f"perceptron: {len(stored)} samples stored, accuracy {perceptron[-1]:.3f}")

# %%
# The same pair step, on a stream
# -------------------------------
#
# The pair step of :doc:`lesson 3 <lesson_3_smo>` does not need all samples. LASVM keeps a set of them with their
# gradients, and does two things with each new sample:
#
# - PROCESS: pair the new sample with the stored one that violates optimality most together with it, and make one step.
#   If there is none, the sample is not stored: it is beyond the margin already.
# - REPROCESS: make one step with the most violating pair among the stored samples, and drop those that became useless:
#   variable 0, and not part of any violating pair.
#
# Every step is an exact line search, so that the dual value never decreases. The choice of the partner by second-order
# gain gives better models in one pass than by first order, with fewer support vectors.


def stream(model):
    """Learn from the stream, and return the accuracies and numbers of support vectors along it."""
    accuracy, kept = [], []
    for start in range(0, 3000, 150):
        model.partial_fit(X[start : start + 150], y[start : start + 150])
        accuracy.append(model.score(X_new, y_new))
        kept.append(len(model.support_))
    return accuracy, kept


runs = {
    "LASVM, second order": stream(OnlineSVC(C=100, gamma=gamma)),
    "LASVM, first order": stream(OnlineSVC(C=100, gamma=gamma, selection="most_violating_pair")),
}
batch = SVC(C=100, gamma=gamma).fit(X, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
left.plot(checks, perceptron, ":", color="#9aa0a8", linewidth=2, label="kernel perceptron")
for (name, (accuracy, kept)), colour in zip(runs.items(), ("#0072B2", "#D55E00"), strict=True):
    left.plot(checks, accuracy, color=colour, linewidth=2, label=name)
    right.plot(checks, kept, color=colour, linewidth=2, label=name)
left.axhline(batch.score(X_new, y_new), color="#26292e", linestyle="--", label="batch, all samples")
right.axhline(len(batch.support_), color="#26292e", linestyle="--", label="batch, all samples")
left.set(xlabel="samples seen", ylabel="accuracy on new samples")
right.set(xlabel="samples seen", ylabel="support vectors")
left.legend(fontsize="small")

# %%
# How far from the batch solution?
# --------------------------------
#
# The batch objective can be evaluated for the online model, and its dual variables bound the optimum from below: a
# certificate for a model that has seen each sample once. More passes, and a final phase on the stored samples, close
# the gap.
for name, model in {
    "one pass": OnlineSVC(C=100, gamma=gamma, random_state=0),
    "two passes": OnlineSVC(C=100, gamma=gamma, epochs=2, random_state=0),
    "one pass, finished": OnlineSVC(C=100, gamma=gamma, finishing=True, random_state=0),
}.items():
    certificate = model.fit(X, y).certify(X, y)
    print(f"{name:19} accuracy {model.score(X_new, y_new):.3f}, relative gap {certificate.relative_gap:.1e}")

# %%
# Exercises
# ---------
#
# 1. How many steps does LASVM make for n samples? Compare with the number that the batch solver needs.
# 2. Why is it safe not to store a sample that violates nothing, and when does it become wrong later?
# 3. Shuffle the stream with another seed. How much do the accuracies vary?
# 4. Which samples would you ask the label of, if labels were expensive? Compare with ``ActiveLearner``.
