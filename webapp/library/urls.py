"""Addresses of the library."""

from django.urls import URLPattern, path

from webapp.library import upload_views, views

urlpatterns: list[URLPattern] = [
    path("t/<slug:slug>/library/", views.library, name="library"),
    path("t/<slug:slug>/library/upload/", upload_views.page, name="library-upload"),
    path("t/<slug:slug>/library/uploads", upload_views.begin, name="library-uploads"),
    path("t/<slug:slug>/library/uploads/<uuid:upload_id>", upload_views.file, name="library-file"),
    path("t/<slug:slug>/library/<int:item_id>/", views.item, name="library-item"),
    path("t/<slug:slug>/library/<int:item_id>/rename", views.rename, name="library-rename"),
    path("t/<slug:slug>/library/<int:item_id>/archive", views.archive, name="library-archive"),
    path("t/<slug:slug>/library/<str:kind>/<slug:name>/", views.built_in, name="library-built-in"),
]
