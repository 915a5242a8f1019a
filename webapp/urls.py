"""The URLs of the site."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import path

from webapp.layers import views as layers
from webapp.pages import alarms, coast, languages, maps, operations, teams, views
from webapp.questions.replay import views as replay
from webapp.questions.reports import views as reports

urlpatterns = [
    path("", views.map_page, name="map"),
    path("plans/schema.json", views.schema_of_plans, name="plan-schema"),
    path("healthz", views.health, name="health"),
    path("livez", views.alive, name="alive"),
    path("login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("login/once/<str:secret>/", views.login_once, name="login-once"),
    path("password/", auth.PasswordChangeView.as_view(success_url="/"), name="password"),
    path("language/", languages.choose, name="language"),
    path("texts/<str:language>/<str:hashed>.js", languages.catalogue, name="catalogue"),
    path("layers/", layers.layers, name="layers"),
    path("layers/<slug:name>", layers.layer, name="layer"),
    path("layers/<slug:name>/cancel", layers.cancel, name="layer-cancel"),
    path("layers/<slug:name>/share", layers.share, name="layer-share"),
    path("layers/<slug:name>/look", layers.look, name="layer-look"),
    path("layers/<slug:name>/features", layers.features, name="layer-features"),
    path("coast/<str:name>.json", coast.cells, name="coast"),
    path("maps/<int:number>/<int:z>/<int:x>/<int:y>", maps.tile, name="map-tile"),
    path("alarms/", alarms.page, name="alarms"),
    path("alarms/browser", alarms.browser, name="alarms-browser"),
    path("alarms/browser/known", alarms.known, name="alarms-known"),
    path("alarms/browser/forget", alarms.forget, name="alarms-forget"),
    path("alarms/browser/test", alarms.trial, name="alarms-test"),
    path("teams/", teams.every, name="teams"),
    path("teams/<int:number>/", teams.page, name="team"),
    path("teams/<int:number>/change", teams.change, name="team-change"),
    path("teams/<int:number>/channel", teams.channel, name="team-channel"),
    path("teams/<int:number>/subscription", teams.subscription, name="team-subscription"),
    path("shared/<str:secret>/", views.shared, name="shared"),
    path("metrics", operations.metrics, name="metrics"),
    path("operations/", operations.page, name="operations"),
    path("reports/<slug:name>", reports.report, name="report"),
    path("replay/", replay.stored, name="replay"),
    path("replay/elements/<slug:name>", replay.elements, name="replay-elements"),
    path("replay/answers", replay.answers, name="replay-answers"),
    path("replay/events", replay.events, name="replay-events"),
    path("replay/events/<int:number>", replay.query_events, name="replay-query-events"),
    path("operations/figures", operations.figures, name="operations-figures"),
    path("admin/", admin.site.urls),
]
