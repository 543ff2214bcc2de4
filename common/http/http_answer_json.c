/* Answers that every daemon gives, and the form of refusals. */
#include "http.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"

void http_respond_json(struct http_response *response, unsigned status, char *text)
{
    static const char lost[] = "{\"error\": \"out of memory\"}";
    response->status = text == NULL ? 500 : status;
    response->type = NULL;
    response->body = text == NULL ? strdup(lost) : text;
    response->size = response->body == NULL ? 0 : strlen(response->body);
}

void http_respond_error(struct http_response *response, unsigned status, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_t *object = json_pack("{s:s%}", "error", text, strlen(text));
    if (object == NULL) { /* a cut in the middle of a letter is no text for JSON */
        object = json_pack("{s:s}", "error", "the request is refused; the reason cannot be shown");
    }
    http_respond_json(response, status, json_dumps(object, JSON_COMPACT));
    json_decref(object);
}

enum http_when http_answer_metrics(void *context, const struct http_request *request,
                                   struct http_response *response)
{
    struct error err = {.text = ""};
    char *text = NULL;
    size_t size = 0;
    (void)context;
    (void)request;
    if (metrics_render(&text, &size, &err) != STATUS_OK) {
        http_respond_error(response, 500, "%s", err.text);
        return HTTP_NOW;
    }
    response->type = "text/plain; version=0.0.4; charset=utf-8";
    response->body = text;
    response->size = size;
    return HTTP_NOW;
}
