import os

import numpy as np
import pytest

distributed = pytest.importorskip("distributed", reason="dask and distributed are in the test extra")


@pytest.fixture(scope="module", autouse=True)
def environment():
    """Restore the environment: a nanny of Dask sets the number of BLAS threads there, for all processes that follow."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture(scope="module")
def client(environment):
    """A client of three worker processes of one thread."""
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(draw_small_samples)
        yield client


def draw_small_samples():
    """Let starts be those of few rows, so that small data take several passes."""
    from maxmargin.machines.linear import block_data

    block_data.SAMPLE_VALUES, block_data.MIN_SAMPLE_ROWS = 500, 1000


@pytest.fixture(scope="session")
def table():
    """Rows, labels of two and of three classes, and targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    noisy = X + 0.7 * rng.normal(size=X.shape)
    return X, noisy[:, 0] + noisy[:, 1] > 0.3, np.argmax(noisy[:, :3], axis=1), noisy[:, 0] - 2 * noisy[:, 3] + 5
