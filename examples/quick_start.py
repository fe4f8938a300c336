"""Train, predict, and print the certificate of optimality."""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = make_pipeline(StandardScaler(), SVC(C=10)).fit(X_train, y_train)
print("accuracy:", round(model.score(X_test, y_test), 4))
print("certificate:", model[-1].certificate_)
print("margin:", model[-1].geometry_)
