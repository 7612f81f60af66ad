"""Addresses of the comparison."""

from django.urls import path

from webapp.compare import views

urlpatterns = [
    path("t/<slug:slug>/compare/", views.compare, name="compare"),
    path("t/<slug:slug>/compare/data", views.data, name="compare-data"),
    path("t/<slug:slug>/compare/table", views.results_table, name="compare-table"),
    path("t/<slug:slug>/compare/table.csv", views.results_csv, name="compare-csv"),
]
