# Whimbrel in containers: one file, two images.
#
#   docker build --target cli -t whimbrel .             the command line
#   docker build --target spark -t whimbrel-spark .     Spark with Whimbrel, for drivers and executors
#
# Kernels are compiled while an image is built, so that containers start fast. docs/install.md says more.

ARG PYTHON_IMAGE=python:3.13-slim
ARG SPARK_IMAGE=apache/spark:4.3.0-python3

FROM ${PYTHON_IMAGE} AS wheel
WORKDIR /source
COPY constraints.txt ./
RUN pip install --no-cache-dir --constraint constraints.txt hatchling
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m hatchling build -t wheel -d /dist

FROM ${PYTHON_IMAGE} AS cli
ENV NUMBA_CACHE_DIR=/opt/whimbrel/kernels
COPY constraints.txt /opt/whimbrel/
COPY --from=wheel /dist /opt/whimbrel/dist
RUN pip install --no-cache-dir --constraint /opt/whimbrel/constraints.txt \
        "$(echo /opt/whimbrel/dist/*.whl)[pandas,polars,geo,plan]"
# Numba uses kernels only from a folder that it may write to, whoever the user of the container is.
RUN whimbrel warm && chmod -R a+rwX /opt/whimbrel/kernels
RUN useradd --create-home whimbrel
USER whimbrel
WORKDIR /data
ENTRYPOINT ["whimbrel"]
CMD ["--help"]

FROM ${SPARK_IMAGE} AS spark
USER root
ENV NUMBA_CACHE_DIR=/opt/whimbrel/kernels PYSPARK_PYTHON=python3
RUN python3 -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Whimbrel needs Python 3.11 or newer')"
COPY constraints.txt /opt/whimbrel/
COPY --from=wheel /dist /opt/whimbrel/dist
# Spark itself is in the image: of the extra "spark" only what goes with it.
RUN python3 -m pip install --no-cache-dir --constraint /opt/whimbrel/constraints.txt \
        "$(echo /opt/whimbrel/dist/*.whl)[pandas,geo,mqtt]"
RUN whimbrel warm && chmod -R a+rwX /opt/whimbrel/kernels
USER spark
