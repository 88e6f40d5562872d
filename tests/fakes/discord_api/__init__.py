"""Discord on loopback: its REST API and its gateway, over real HTTP and a real web socket, no Discord.

``world`` holds servers, people and what is said, ``rest`` what a bot may call, ``checks`` what the real API refuses,
``display`` what people see of a text, ``gateway`` the sessions, and ``server`` the listening around them. It shares no
code with the adapter that it tests.
"""

from tests.fakes.discord_api.display import shown
from tests.fakes.discord_api.server import TOKEN, DiscordApi, Fault
from tests.fakes.discord_api.world import ANN, BOB, BOT, Channel, Guild, Sent, User

__all__ = ["ANN", "BOB", "BOT", "TOKEN", "Channel", "DiscordApi", "Fault", "Guild", "Sent", "User", "shown"]
