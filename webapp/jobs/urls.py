"""Addresses of jobs."""

from django.urls import path

from webapp.jobs import views

urlpatterns = [
    path("t/<slug:slug>/jobs/", views.jobs, name="jobs"),
    path("t/<slug:slug>/jobs/rows", views.rows, name="jobs-rows"),
    path("jobs/<int:job_id>/", views.job, name="job"),
    path("jobs/<int:job_id>/stop", views.stop, name="job-stop"),
    path("jobs/<int:job_id>/pause", views.pause, name="job-pause"),
    path("jobs/<int:job_id>/resume", views.resume, name="job-resume"),
    path("jobs/<int:job_id>/checkpoint", views.save, name="job-save"),
    path("jobs/<int:job_id>/checkpoints/<str:name>.zip", views.checkpoint, name="job-checkpoint"),
    path("jobs/<int:job_id>/artifacts/<str:name>", views.artifact, name="job-artifact"),
    path("jobs/<int:job_id>/spec.yaml", views.spec, name="job-spec"),
    path("jobs/<int:job_id>/state", views.state, name="job-state"),
]
