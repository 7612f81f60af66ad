"""The addresses of the sockets."""

from django.urls import URLPattern, path

from webapp.live.consumers import JobConsumer, TeamConsumer

sockets: list[URLPattern] = [
    path("ws/jobs/<int:job_id>/", JobConsumer.as_asgi()),
    path("ws/t/<slug:slug>/", TeamConsumer.as_asgi()),
]
