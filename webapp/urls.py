"""Addresses of the site."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import path

from webapp import views

urlpatterns = [
    path("", views.map_page, name="map"),
    path("plans/schema.json", views.schema_of_plans, name="plan-schema"),
    path("healthz", views.health, name="health"),
    path("login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("login/once/<str:secret>/", views.login_once, name="login-once"),
    path("password/", auth.PasswordChangeView.as_view(success_url="/"), name="password"),
    path("admin/", admin.site.urls),
]
