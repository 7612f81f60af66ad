"""The way in, and health."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from webapp.teams import views

urlpatterns = [
    path("", views.home, name="home"),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("login/link/<str:uidb64>/<str:token>/", views.login_link, name="login-link"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
]
