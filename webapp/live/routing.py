"""The addresses of the sockets."""

from django.urls import URLPattern, path, re_path

from webapp.live.consumers import JobConsumer, NowhereConsumer, TeamConsumer

sockets: list[URLPattern] = [
    path("ws/jobs/<int:job_id>/", JobConsumer.as_asgi()),
    path("ws/t/<slug:slug>/", TeamConsumer.as_asgi()),
    re_path("", NowhereConsumer.as_asgi()),
]
