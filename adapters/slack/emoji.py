"""Emoji by the names that Slack has for them, as far as people react with them. The others stay names."""

from __future__ import annotations

_TABLE = """
👍 +1 👎 -1 👌 ok_hand 👏 clap 🙏 pray 🙌 raised_hands
👋 wave 💪 muscle 🤝 handshake ✌ v 🤞 crossed_fingers 👀 eyes
👉 point_right 👈 point_left 👆 point_up_2 👇 point_down
🫡 saluting_face 🤷 shrug 🤦 face_palm ✅ white_check_mark
✔ heavy_check_mark ❌ x ❗ exclamation ❓ question
⚠ warning ⛔ no_entry 🚫 no_entry_sign ➕ heavy_plus_sign
➖ heavy_minus_sign 💯 100 🆗 ok 🆕 new
🔁 repeat ⏳ hourglass_flowing_sand ⌛ hourglass ❤ heart 💔 broken_heart
💙 blue_heart 💚 green_heart 💛 yellow_heart 💜 purple_heart
🔥 fire ✨ sparkles ⭐ star 🎉 tada 🎊 confetti_ball
🎁 gift 🏆 trophy 🚀 rocket ⚡ zap 💡 bulb 🔔 bell
📌 pushpin 📎 paperclip 🔗 link 😀 grinning 😃 smiley 😄 smile 😁 grin
😂 joy 🤣 rolling_on_the_floor_laughing 😅 sweat_smile
🙂 slightly_smiling_face 😉 wink 😊 blush 😍 heart_eyes
🥰 smiling_face_with_3_hearts 😘 kissing_heart 😎 sunglasses
🤩 star-struck 🥳 partying_face 🤔 thinking_face
🤨 face_with_raised_eyebrow 😐 neutral_face 🙄 face_with_rolling_eyes 😬 grimacing
😴 sleeping 😢 cry 😭 sob 😱 scream
😡 rage 🤯 exploding_head 😕 confused 🙁 slightly_frowning_face
😞 disappointed 😇 innocent 🤓 nerd_face 🤖 robot_face
💩 hankey 👻 ghost 💀 skull 🎩 tophat 🐛 bug 🐳 whale
🦄 unicorn_face 🐌 snail 🐙 octopus 🍕 pizza ☕ coffee 🍺 beer
🎂 birthday 🌍 earth_africa ☀ sunny 🌈 rainbow 🌱 seedling
📝 memo 📅 date 🔍 mag 🔒 lock 🔑 key 🛠 hammer_and_wrench
🔧 wrench
"""
_WORDS = _TABLE.split()

_AS_EMOJI = "\ufe0f"
"""Asks for the coloured form of the character before it; Slack's names hold it already."""

_NAME_OF = dict(zip(_WORDS[::2], _WORDS[1::2], strict=True))
_CHARACTER_OF = {name: character for character, name in _NAME_OF.items()} | {
    "thumbsup": "👍",
    "thumbsdown": "👎",
    "point_up": "☝",
    "thinking": "🤔",
    "poop": "💩",
    "party": "🎉",
}


def name_of(character: str) -> str | None:
    """What Slack calls an emoji; None for one that is not known here."""
    return _NAME_OF.get(character.replace(_AS_EMOJI, ""))


def character_of(name: str, points: str = "") -> str:
    """The emoji of that name, with ``points`` its code points as Slack writes them ("1f44b-1f3fb"), if it does.

    One that a workspace made itself is ``:name:``.
    """
    if points:
        try:
            return "".join(chr(int(point, 16)) for point in points.split("-"))
        except (ValueError, OverflowError):
            pass
    plain = name.partition("::")[0]  # without the tone of the skin
    return _CHARACTER_OF.get(plain, f":{plain}:")
