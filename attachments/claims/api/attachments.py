"""Attachments: upload, replace, download, delete. A body is read only after its claim is known to be changeable."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from ninja import Router, Status

from attachments.claims import delete
from attachments.claims.access import ensure_changeable, find_attachment, find_item
from attachments.claims.api.receive_upload import FORM, PART, received_file
from attachments.claims.api.request_id import request_id_of
from attachments.claims.api.schemas import AttachmentRead
from attachments.claims.api.send_content import content_answer
from attachments.claims.content import opened
from attachments.claims.upload import Stored, Upload, store
from attachments.http.current_user import CurrentUser, current_user
from attachments.http.metrics import Written, written
from attachments.http.people import DOORS
from attachments.http.problems import ProblemDetails

REFUSALS: dict[Any, Any] = dict.fromkeys((400, 401, 403, 404, 409, 413, 415, 429, 503), ProblemDetails)
ONE = "/{uuid:claim_id}/items/{uuid:item_id}/attachments/{uuid:attachment_id}"
BODY = {
    "parameters": [
        {
            "in": "header",
            "name": "X-Request-ID",
            "required": False,
            "schema": {"type": "string", "maxLength": 200},
            "description": "Names this upload: repeat it with the same one, and it is counted once.",
        }
    ],
    "requestBody": {
        "required": True,
        "content": {
            FORM: {
                "schema": {
                    "type": "object",
                    "required": [PART],
                    "properties": {PART: {"type": "string", "format": "binary"}},
                }
            }
        },
    },
}

router = Router(auth=DOORS, tags=["attachments"], by_alias=True)


@router.post(
    "/{uuid:claim_id}/items/{uuid:item_id}/attachments",
    response={200: AttachmentRead, 201: AttachmentRead, **REFUSALS},
    operation_id="uploadAttachment",
    openapi_extra=BODY,
)
def upload(request: HttpRequest, claim_id: UUID, item_id: UUID) -> Any:
    """Add an attachment to an item of a draft. 200 if the same upload made it before."""
    user = current_user(request)
    ensure_changeable(user, claim_id)
    find_item(user, claim_id, item_id)
    done = _stored(request, user, claim_id, item_id, replaces=None)
    written(Written.STORED if done.is_new else Written.REPEATED)
    return Status(201 if done.is_new else 200, done.attachment)


@router.put(ONE, response={200: AttachmentRead, **REFUSALS}, operation_id="replaceAttachment", openapi_extra=BODY)
def replace(request: HttpRequest, claim_id: UUID, item_id: UUID, attachment_id: UUID) -> Any:
    """Give an attachment of a draft another file and name."""
    user = current_user(request)
    ensure_changeable(user, claim_id)
    find_attachment(user, claim_id, item_id, attachment_id)
    done = _stored(request, user, claim_id, item_id, replaces=attachment_id)
    written(Written.REPLACED)
    return Status(200, done.attachment)


@router.get(ONE, response={200: AttachmentRead, **REFUSALS}, operation_id="readAttachment")
def read(request: HttpRequest, claim_id: UUID, item_id: UUID, attachment_id: UUID) -> Any:
    """What is known of an attachment."""
    return find_attachment(current_user(request), claim_id, item_id, attachment_id)


@router.get(f"{ONE}/content", response={**REFUSALS}, operation_id="downloadAttachment")
def download(request: HttpRequest, claim_id: UUID, item_id: UUID, attachment_id: UUID) -> HttpResponseBase:
    """The file, byte for byte, as a download."""
    return content_answer(*opened(current_user(request), claim_id, item_id, attachment_id))


@router.delete(ONE, response={204: None, **REFUSALS}, operation_id="deleteAttachment")
def delete_attachment(request: HttpRequest, claim_id: UUID, item_id: UUID, attachment_id: UUID) -> Any:
    """Delete an attachment of a draft with its file. No quota refuses it, and none is given back."""
    delete.delete_attachment(current_user(request), claim_id, item_id, attachment_id)
    written(Written.ATTACHMENT_DELETED)
    return Status(204, None)


def _stored(request: HttpRequest, user: CurrentUser, claim_id: UUID, item_id: UUID, *, replaces: UUID | None) -> Stored:
    request_id = request_id_of(request)
    with received_file(request) as file:
        sent = Upload(
            claim_id=claim_id,
            item_id=item_id,
            name=file.name,
            media_type=file.media_type,
            incoming=file.incoming,
            request_id=request_id,
        )
        return store(user, sent, replaces=replaces, at=timezone.now())
