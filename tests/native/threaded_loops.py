"""Every threaded native loop at four threads, from one and from several Python threads; run under ThreadSanitizer.

`test_threads.py` builds the extension with the thread sanitiser and runs this file with it.
"""

import io
import threading
import warnings

import numpy as np
from scipy import sparse

from maxmargin import (
    SVC,
    SVR,
    KernelApproximationSVC,
    LinearSVC,
    LinearSVR,
    OneClassSVM,
    OnlineSVC,
    _native,
    blocks,
)
from maxmargin.datasets import dump_libsvm, load_libsvm

THREADS = 4


def main() -> None:
    warnings.simplefilter("ignore")  # fits are cut short
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 20))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + random.normal(size=1500) > 0.3, 1, -1)
    rows = sparse.csr_matrix(np.where(np.abs(X) > 1.0, X, 0.0))
    models = [
        SVC(n_jobs=THREADS, solver="block", max_iter=20_000),
        SVC(n_jobs=THREADS, solver="pairwise", max_iter=2000),
        SVC(n_jobs=THREADS, kernel="laplacian", max_iter=2000),
        SVC(n_jobs=THREADS, kernel="linear", max_iter=2000),
        SVR(n_jobs=THREADS, max_iter=2000),
        OneClassSVM(n_jobs=THREADS, max_iter=2000),
        OnlineSVC(n_jobs=THREADS),
        LinearSVC(n_jobs=THREADS, max_iter=20),
        LinearSVC(n_jobs=THREADS, dual=False, max_iter=20),
        LinearSVC(n_jobs=THREADS, penalty="l1", dual=False, max_iter=20),
        LinearSVR(n_jobs=THREADS, max_iter=20),
        KernelApproximationSVC(n_jobs=THREADS, n_components=50, random_state=0),
    ]
    for data in (X, rows, X.astype(np.float32)):
        for model in models:
            fit_and_predict(model, data, y)
    small = X[:300], np.arange(300) % 5  # a batch of small problems, and their votes
    fit_and_predict(SVC(n_jobs=THREADS), *small)
    fit_and_predict(SVC(n_jobs=THREADS, multi_class="ovr"), *small)
    long = np.tile(X, (16, 1)), np.tile(y, 16)  # rows of kernel values that threads share, and blocks of rows
    fit_and_predict(SVC(n_jobs=THREADS, solver="pairwise", max_iter=300), long[0][:6000], long[1][:6000])
    for model in (LinearSVC(n_jobs=THREADS, max_iter=3), LinearSVC(n_jobs=THREADS, loss="hinge", max_iter=3)):
        model.fit(blocks.open(*long, block_rows=20000))
    read_and_write(rows, y)
    workers = [threading.Thread(target=fit_and_predict, args=(models[k], X[:400], y[:400])) for k in (0, 1, 7)]
    workers += [threading.Thread(target=fit_and_predict, args=(SVC(n_jobs=2), *small)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("finished on", _native.level)


def fit_and_predict(model: object, X: object, y: object) -> None:
    model.fit(X, y)
    model.predict(X[:200])


def read_and_write(rows: object, y: object) -> None:
    """Read and write LIBSVM's text in many chunks."""
    text = io.BytesIO()
    dump_libsvm(sparse.vstack([rows] * 10, format="csr"), np.tile(y, 10), text, n_jobs=THREADS)
    text.seek(0)
    load_libsvm(text, n_jobs=THREADS)


if __name__ == "__main__":
    main()
