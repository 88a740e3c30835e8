# The broker. Build it with `make docker` from the root of the repository, on any Debian image with Python.
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS builder
WORKDIR /build
COPY deploy/docker/install.sh pyproject.toml requirements.lock ./
RUN ./install.sh compiler && ./install.sh uv
RUN ./install.sh dependencies tracing
COPY LICENSE NOTICE README.md hatch_build.py ./
COPY src src
RUN ./install.sh kafscale && /opt/kafscale/bin/python -c 'from kafscale.records import scan; assert scan.is_compiled()' && ./install.sh trim s3 sts

FROM ${PYTHON_IMAGE}
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="kafscale-broker" \
      org.opencontainers.image.description="A broker of Kafscale: Kafka's protocol on object storage." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# The working directory is for an embedded broker without a bucket; in Kubernetes, only /tmp is writable.
RUN useradd --uid 65532 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin nonroot \
 && install -d -o 65532 -g 65532 /var/lib/kafscale
COPY --from=builder /opt/kafscale /opt/kafscale
# A container is reached from outside of it only, so the listeners for clients and metrics are on all its addresses.
ENV PATH=/opt/kafscale/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    KAFSCALE_BROKER_HOST=0.0.0.0 KAFSCALE_BROKER_METRICS_HOST=0.0.0.0
WORKDIR /var/lib/kafscale
USER 65532:65532
EXPOSE 9092 9093 9095
HEALTHCHECK NONE
ENTRYPOINT ["kafscale"]
CMD ["broker"]
