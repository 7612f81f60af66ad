# syntax=docker/dockerfile:1
# One file, two kinds of image: `web` (pages, control, ingest; free of TensorFlow) and `worker` (a training host).
FROM python:3.11-slim AS base
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /app
RUN useradd --create-home --uid 10001 lockstep && install -d -o lockstep /var/lib/lockstep /var/lib/lockstep-store

FROM base AS web
COPY requirements/web.txt requirements/
RUN pip install --require-hashes -r requirements/web.txt
COPY manage.py ./
COPY webapp webapp
COPY workers/__init__.py workers/
COPY workers/contract workers/contract
COPY workers/training workers/training
COPY templates templates
COPY static static
RUN SECRET_KEY=build LOCKSTEP_HOME=/tmp python manage.py collectstatic --no-input -v 0
ENV LOCKSTEP_HOME=/var/lib/lockstep
USER lockstep
EXPOSE 8000
CMD ["uvicorn", "webapp.asgi:application", "--host", "0.0.0.0", "--port", "8000"]

FROM base AS worker
# cpu, gpu or tpu: which lock, and so which TensorFlow.
ARG ACCELERATOR=cpu
COPY requirements/worker-${ACCELERATOR}.txt requirements/
RUN pip install --require-hashes -r requirements/worker-${ACCELERATOR}.txt
COPY workers workers
ENV LOCKSTEP_RUNS=/var/lib/lockstep/runs
USER lockstep
CMD ["python", "-m", "workers.host"]
