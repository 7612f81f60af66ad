"""Addresses of the new-job page."""

from django.urls import URLPattern, path

from webapp.configure import views

urlpatterns: list[URLPattern] = [
    path("t/<slug:slug>/jobs/new/", views.new, name="job-new"),
    path("t/<slug:slug>/jobs/new/fields", views.fields, name="job-new-fields"),
    path("t/<slug:slug>/jobs/new/check", views.check, name="job-new-check"),
]
