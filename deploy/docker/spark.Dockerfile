# Spark jobs: in a single pod, or as driver and executors of Spark on Kubernetes. Build it with `make docker` from the
# root of the repository, on any Debian image with Python. Java is one of the Python packages.
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS builder
WORKDIR /build
COPY deploy/docker/install.sh pyproject.toml requirements.lock ./
RUN ./install.sh uv
RUN ./install.sh dependencies spark
COPY LICENSE NOTICE README.md hatch_build.py ./
COPY src src
RUN ./install.sh kafscale && ./install.sh trim s3 sts glue && ./install.sh java
# Paths that do not depend on the version of Python.
RUN ln -s /opt/kafscale/lib/python3.*/site-packages/pyspark /opt/kafscale/spark \
 && cp "$(/opt/kafscale/bin/kafscale spark entry)" /opt/kafscale/job.py

FROM ${PYTHON_IMAGE}
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="kafscale-spark" \
      org.opencontainers.image.description="The jobs of Kafscale on Spark: lake, merge, compact, scrub, report." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Spark on Kubernetes mounts its configuration at this path.
RUN useradd --uid 65532 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin nonroot \
 && install -d /opt/spark/conf
COPY --from=builder /opt/kafscale /opt/kafscale
COPY deploy/docker/spark-entry.sh /opt/kafscale/bin/spark-entry
ENV PATH=/opt/kafscale/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    JAVA_HOME=/opt/kafscale/java SPARK_HOME=/opt/kafscale/spark SPARK_CONF_DIR=/opt/spark/conf \
    PYSPARK_PYTHON=/opt/kafscale/bin/python PYSPARK_DRIVER_PYTHON=/opt/kafscale/bin/python
WORKDIR /tmp
USER 65532:65532
HEALTHCHECK NONE
ENTRYPOINT ["spark-entry"]
