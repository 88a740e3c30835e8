# The operator, which also restores snapshots of etcd. Build it with `make docker` from the root of the repository, on
# any Debian image with Python, and with any image of etcd 3.6 or newer.
ARG PYTHON_IMAGE=python:3.11-slim
ARG ETCD_IMAGE=etcd:v3.6.16

FROM ${ETCD_IMAGE} AS etcd

FROM ${PYTHON_IMAGE} AS builder
WORKDIR /build
COPY deploy/docker/install.sh pyproject.toml requirements.lock ./
RUN ./install.sh uv
RUN ./install.sh dependencies operator tracing
COPY LICENSE NOTICE README.md hatch_build.py ./
COPY src src
RUN ./install.sh kafscale && ./install.sh trim s3 sts

FROM ${PYTHON_IMAGE}
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="kafscale-operator" \
      org.opencontainers.image.description="The Kubernetes operator of Kafscale." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
RUN useradd --uid 65532 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin nonroot
COPY --from=etcd /usr/local/bin/etcdutl /usr/local/bin/etcdutl
COPY --from=builder /opt/kafscale /opt/kafscale
ENV PATH=/opt/kafscale/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /tmp
USER 65532:65532
EXPOSE 9093 9094
HEALTHCHECK NONE
ENTRYPOINT ["kafscale"]
CMD ["operator"]
