"""Teams, saved views and share links in the admin."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.models import Membership, SavedView, ShareLink, Team
from webapp.rights.signed_in import SignedInRequest
from webapp.teams import links
from webapp.words.refusals import Refused


class Members(admin.TabularInline):
    """The members of a team."""

    model = Membership
    extra = 1
    autocomplete_fields = ("user",)
    verbose_name = _("member")


@admin.register(Team)
class TeamAdmin(admin.ModelAdmin):
    """Teams with their members."""

    list_display = ("name", "count", "admins", "created")
    search_fields = ("name",)
    inlines = (Members,)

    @admin.display(description=_("members"))
    def count(self, team: Team) -> int:
        """The number of members."""
        return team.memberships.count()

    @admin.display(description=_("admins"))
    def admins(self, team: Team) -> str:
        """The names of the admins."""
        return ", ".join(str(one.user) for one in team.memberships.filter(role="admin").select_related("user"))


@admin.register(SavedView)
class SavedViewAdmin(admin.ModelAdmin):
    """Saved views; the page makes them."""

    list_display = ("name", "owner", "team", "updated")
    list_filter = ("team", ("owner", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("owner", "team")
    search_fields = ("name", "owner__username")
    readonly_fields = ("owner", "created", "updated")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """The page makes views."""
        return False


@admin.register(ShareLink)
class ShareLinkAdmin(admin.ModelAdmin):
    """Share links; the page makes them, since their secret is shown once only."""

    list_display = ("name", "owner", "team", "expires", "state", "created")
    list_filter = ("team", ("owner", admin.RelatedOnlyFieldListFilter), "expires")
    list_select_related = ("owner", "team")
    search_fields = ("name", "owner__username")
    fields = readonly_fields = ("name", "owner", "team", "queries", "expires", "revoked", "created")
    actions = ("revoke",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """The page makes links."""
        return False

    @admin.display(description=_("state"))
    def state(self, link: ShareLink) -> str:
        """Whether the link works."""
        if link.revoked:
            return "revoked"
        return "expired" if link.expires <= timezone.now() else "works"

    @admin.action(description=_("Revoke selected share links"))
    def revoke(self, request: SignedInRequest, queryset: QuerySet[ShareLink]) -> None:
        """End links and their connections."""
        for link in queryset:
            try:
                links.revoke(request.user, link.pk)
            except Refused as refused:
                self.message_user(request, refused.message, messages.ERROR)
        self.message_user(
            request, gettext("%(count)s share links revoked") % {"count": len(queryset)}, messages.SUCCESS
        )
