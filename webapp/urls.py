"""Every address of the site."""

from django.urls import include, path

urlpatterns = [
    path("", include("webapp.teams.urls")),
    path("", include("webapp.jobs.urls")),
    path("", include("webapp.live.urls")),
    path("", include("webapp.configure.urls")),
    path("", include("webapp.compare.urls")),
    path("", include("webapp.library.urls")),
]
