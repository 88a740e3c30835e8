# The console. Build it with `make docker` from the root of the repository, after `make web`, on any Debian image with
# Python.
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS builder
WORKDIR /build
COPY deploy/docker/install.sh pyproject.toml requirements.lock ./
RUN ./install.sh uv
RUN ./install.sh dependencies console
COPY LICENSE NOTICE README.md hatch_build.py ./
COPY src src
RUN ./install.sh kafscale && ./install.sh trim s3 sts

FROM ${PYTHON_IMAGE}
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="kafscale-console" \
      org.opencontainers.image.description="The console of Kafscale." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
RUN useradd --uid 65532 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin nonroot
COPY --from=builder /opt/kafscale /opt/kafscale
ENV PATH=/opt/kafscale/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
WORKDIR /tmp
USER 65532:65532
EXPOSE 8080
HEALTHCHECK NONE
ENTRYPOINT ["kafscale"]
CMD ["console"]
