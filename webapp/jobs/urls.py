"""Addresses of jobs."""

from django.urls import path

from webapp.jobs import views

urlpatterns = [
    path("t/<slug:slug>/jobs/", views.jobs, name="jobs"),
    path("t/<slug:slug>/jobs/rows", views.rows, name="jobs-rows"),
    path("jobs/<int:job_id>/", views.job, name="job"),
    path("jobs/<int:job_id>/stop", views.stop, name="job-stop"),
    path("jobs/<int:job_id>/spec.yaml", views.spec, name="job-spec"),
    path("jobs/<int:job_id>/state", views.state, name="job-state"),
]
