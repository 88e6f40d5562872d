# limpet run as a user without rights, its data in one volume.
FROM python:3.13-slim AS build
WORKDIR /src
RUN python -m venv /opt/limpet
ENV PATH=/opt/limpet/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY locks locks
RUN pip install --require-hashes -r locks/all.txt
COPY pyproject.toml README.md LICENSE ./
COPY bot bot
COPY adapters adapters
COPY agents agents
COPY workspaces workspaces
RUN pip install --no-deps --no-build-isolation .

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin limpet \
    && install --directory --owner=limpet --group=limpet --mode=0700 /data
COPY --from=build /opt/limpet /opt/limpet
ENV PATH=/opt/limpet/bin:$PATH LIMPET_HOME=/data PYTHONUNBUFFERED=1
USER 10001
VOLUME /data
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s CMD ["limpet", "status"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["limpet"]
CMD ["run"]
