# The page in a container: runs as a user of its own and writes nothing but to /dev/shm.
#
#   docker build -t seqviz .
#   docker run --rm --read-only --cap-drop=ALL -p 7860:7860 seqviz
#
# PyTorch's default build for x86 brings several GB of CUDA libraries; to take its CPU build instead, give the
# address of PyTorch's own CPU package index: docker build --build-arg TORCH_INDEX=… -t seqviz .
FROM python:3.11-slim

RUN apt-get update \
    && apt-get install -y --no-install-recommends fonts-wqy-microhei \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /app
COPY requirements.txt ./
ARG TORCH_INDEX=""
RUN if [ -n "$TORCH_INDEX" ]; then \
        pip install --no-cache-dir --index-url "$TORCH_INDEX" "$(grep '^torch==' requirements.txt)"; \
    fi \
    && pip install --no-cache-dir -r requirements.txt

COPY app.py ./
COPY seqviz ./seqviz
COPY models ./models
RUN python -m compileall -q seqviz app.py

ENV GRADIO_SERVER_NAME=0.0.0.0 \
    GRADIO_SERVER_PORT=7860 \
    TMPDIR=/dev/shm \
    MPLCONFIGDIR=/dev/shm/matplotlib \
    PYTHONUNBUFFERED=1
EXPOSE 7860
USER 10001:10001
HEALTHCHECK --start-period=60s CMD python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:7860/', timeout=5)"
CMD ["python", "app.py"]
