"""Files, as clients bring and fetch them: encrypted, under the hash of what they are."""

from __future__ import annotations

from aiohttp import web


class Media:
    """``files`` are the encrypted bytes by name; ``fetched`` the names that were asked for, in order."""

    def __init__(self, host: str) -> None:
        self._host = host
        self.files: dict[str, bytes] = {}
        self.fetched: list[str] = []

    def routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/mms/{kind}/{name}", self._bring)
        router.add_get("/file/{name}", self._fetch)

    async def _bring(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self.files[name] = await request.read()
        path = f"/file/{name}?ccb=1"  # clients add more behind it
        return web.json_response({"url": f"https://{self._host}{path}", "direct_path": path})

    async def _fetch(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self.fetched.append(name)
        if name not in self.files:
            raise web.HTTPNotFound
        return web.Response(body=self.files[name])
