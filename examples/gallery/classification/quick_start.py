"""
Train, predict, and read the certificate
========================================

A classifier in a pipeline with a scaler, its accuracy on new samples, and the proof of how close to the optimum it is.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC
from maxmargin.plotting import SlackHistogramDisplay

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = make_pipeline(StandardScaler(), SVC(C=10)).fit(X_train, y_train)
print("accuracy:", round(model.score(X_test, y_test), 4))
print("certificate:", model[-1].certificate_)

# %%
# The margins of the new samples: those to the left of 0 are on the wrong side of the boundary.
SlackHistogramDisplay.from_estimator(model, X_test, y_test)
