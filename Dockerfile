# The command line in a container: docker build -t maxmargin . && docker run --rm -v "$PWD:/data" maxmargin train data.csv model
FROM python:3.12-slim AS build
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.12-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir /wheels/*.whl && useradd --create-home --uid 1000 user
USER 1000
WORKDIR /data
ENTRYPOINT ["maxmargin"]
