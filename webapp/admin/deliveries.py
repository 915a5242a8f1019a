"""Deliveries in the admin, read-only, with their attempts; dead ones can be sent again."""

import json
from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.bus.telling import tell_task
from webapp.delivery.messages import message_of
from webapp.delivery.tasks import deliver
from webapp.models import Delivery, DeliveryAttempt


class Attempts(admin.TabularInline):
    """The log of a delivery's attempts."""

    model = DeliveryAttempt
    fields = readonly_fields = ("at", "outcome", "status", "took_ms", "error")
    verbose_name_plural = _("attempts")
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Nobody adds attempts: they are only logged."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Who sees a delivery sees its attempts."""
        return request.user.has_perm("webapp.view_delivery")


@admin.register(Delivery)
class DeliveryAdmin(admin.ModelAdmin):
    """The outbox."""

    list_display = ("subject", "state", "last_error", "created", "receiver", "channel", "attempts", "next")
    list_filter = ("state", "channel", ("subscription", admin.RelatedOnlyFieldListFilter), "created")
    list_select_related = ("subscription__user", "subscription__team", "subscription__channel", "channel")
    search_fields = ("key", "change__incident__key")
    date_hierarchy = "created"
    show_full_result_count = False
    inlines = (Attempts,)
    actions = ("send_again",)
    readonly_fields = ("subject", "text", "receiver", "next", "within", "document_shown")
    fields = (
        *("subject", "text", "receiver", "channel", "state", "attempts", "next"),
        *("created", "settled", "held", "within", "key", "document_shown"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        """Add the error of the last attempt."""
        last = DeliveryAttempt.objects.filter(delivery=OuterRef("pk")).order_by("-pk")
        return super().get_queryset(request).annotate(last_error=Subquery(last.values("error")[:1]))

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds deliveries: incidents do."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Deliveries are not edited."""
        return False

    def has_send_permission(self, request: HttpRequest) -> bool:
        """Who may change deliveries may send them again."""
        return request.user.has_perm("webapp.change_delivery")

    @admin.action(description=_("Send dead deliveries again"), permissions=["send"])
    def send_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        """Make dead deliveries due."""
        count = Delivery.objects.filter(pk__in=queryset.values("pk")).send_again()
        if count:
            tell_task(deliver)
        words = gettext("%(count)s deliveries are sent again; those that are not dead stay as they are") % {
            "count": count
        }
        self.message_user(request, words, messages.SUCCESS if count else messages.WARNING)

    @admin.display(description=_("message"))
    def subject(self, delivery: Delivery) -> str:
        """The message in one line."""
        return message_of(delivery.key, delivery.document).subject

    @admin.display(description=_("text"))
    def text(self, delivery: Delivery) -> str:
        """The message for people."""
        return format_html("<pre>{}</pre>", message_of(delivery.key, delivery.document).text)

    @admin.display(description=_("receiver"))
    def receiver(self, delivery: Delivery) -> User | str:
        """The user or the team."""
        return delivery.subscription.user or f"{delivery.subscription.team} (team)"

    @admin.display(description=_("next attempt"), ordering="next_attempt")
    def next(self, delivery: Delivery) -> datetime | None:
        """When it is tried next, while it is not over."""
        return delivery.next_attempt if delivery.state in Delivery.OPEN else None

    @admin.display(description=_("error of the last attempt"))
    def last_error(self, delivery: Any) -> str:
        """The error of the last attempt."""
        return delivery.last_error or "—"

    @admin.display(description=_("sent within the digest"))
    def within(self, delivery: Delivery) -> str | None:
        """The digest that this one is part of."""
        number = delivery.digest_id
        return None if number is None else format_html('<a href="../../{}/change/">{}</a>', number, number)

    @admin.display(description=_("document"))
    def document_shown(self, delivery: Delivery) -> str:
        """The message for programs."""
        return format_html("<pre>{}</pre>", json.dumps(delivery.document, indent=2, ensure_ascii=False))
