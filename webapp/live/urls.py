"""The addresses of a job's series and logs."""

from django.urls import path

from webapp.live import views

urlpatterns = [
    path("jobs/<int:job_id>/series", views.series, name="job-series"),
    path("jobs/<int:job_id>/logs", views.logs, name="job-logs"),
]
