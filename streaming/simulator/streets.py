"""Streets of central Helsinki: corners set by hand, and the bus lines along them."""

# Longitude and latitude in degrees.
CORNERS = {
    "Rautatientori": (24.9445, 60.1709),
    "Kaisaniemi": (24.9478, 60.1731),
    "Pitkäsilta": (24.9497, 60.1765),
    "Hakaniemi": (24.9510, 60.1790),
    "Haapaniemi": (24.9560, 60.1830),
    "Sörnäinen": (24.9610, 60.1875),
    "Vallila": (24.9655, 60.1915),
    "Kumpula": (24.9700, 60.1990),
    "Arabia": (24.9765, 60.2065),
    "Koskela": (24.9720, 60.2160),
    "Kallio": (24.9497, 60.1843),
    "Brahenkenttä": (24.9490, 60.1872),
    "Linnanmäki": (24.9400, 60.1866),
    "Sturenkatu": (24.9500, 60.1908),
    "Mäkelänrinne": (24.9530, 60.1960),
    "Käpylä": (24.9480, 60.2110),
    "Lasipalatsi": (24.9375, 60.1702),
    "Kiasma": (24.9368, 60.1719),
    "Kansallismuseo": (24.9325, 60.1748),
    "Hesperia": (24.9287, 60.1790),
    "Ooppera": (24.9275, 60.1816),
    "Töölön halli": (24.9240, 60.1846),
    "Kansaneläkelaitos": (24.9140, 60.1903),
    "Tilkka": (24.9075, 60.1960),
    "Ruskeasuo": (24.9050, 60.2020),
    "Meilahti": (24.9030, 60.1898),
    "Paciuksenkatu": (24.8955, 60.1925),
    "Munkkiniemi": (24.8770, 60.1974),
    "Auroran sairaala": (24.9290, 60.1915),
    "Pasila": (24.9335, 60.1985),
    "Kamppi": (24.9320, 60.1686),
    "Ruoholahti": (24.9150, 60.1637),
    "Lauttasaaren silta": (24.8965, 60.1610),
    "Lauttasaari": (24.8780, 60.1598),
    "Simonkenttä": (24.9360, 60.1695),
    "Erottaja": (24.9437, 60.1664),
    "Ylioppilastalo": (24.9410, 60.1689),
    "Kauppatori": (24.9520, 60.1680),
    "Senaatintori": (24.9522, 60.1694),
    "Snellmaninkatu": (24.9543, 60.1724),
    "Siltavuori": (24.9530, 60.1752),
    "Hietalahti": (24.9297, 60.1622),
    "Telakkakatu": (24.9310, 60.1590),
    "Eira": (24.9372, 60.1572),
    "Tehtaankatu": (24.9460, 60.1590),
    "Kaivopuisto": (24.9560, 60.1597),
    "Olympiaterminaali": (24.9567, 60.1625),
    "Eteläranta": (24.9528, 60.1658),
    "Kalasatama": (24.9775, 60.1877),
    "Kulosaari": (25.0080, 60.1878),
    "Herttoniemi": (25.0310, 60.1948),
    "Siilitie": (25.0470, 60.2035),
    "Itäkeskus": (25.0815, 60.2102),
}

# For each route, its corners in order. Every corner is a stop, and there are more stops between them.
BUS_LINES = {
    "14": "Eira,Telakkakatu,Hietalahti,Kamppi,Simonkenttä,Lasipalatsi,Kiasma,Kansallismuseo,Hesperia,Ooppera,"
    "Töölön halli,Kansaneläkelaitos,Meilahti,Paciuksenkatu,Munkkiniemi",
    "17": "Kaivopuisto,Olympiaterminaali,Eteläranta,Kauppatori,Senaatintori,Snellmaninkatu,Siltavuori,Pitkäsilta,"
    "Hakaniemi,Kallio,Brahenkenttä,Sturenkatu,Mäkelänrinne,Käpylä",
    "20": "Lauttasaari,Lauttasaaren silta,Ruoholahti,Hietalahti,Erottaja,Ylioppilastalo,Lasipalatsi,Kiasma,"
    "Kansallismuseo,Hesperia,Ooppera,Töölön halli,Auroran sairaala,Pasila",
    "23": "Rautatientori,Kaisaniemi,Pitkäsilta,Hakaniemi,Kallio,Brahenkenttä,Linnanmäki,Auroran sairaala,Pasila,"
    "Ruskeasuo",
    "24": "Kauppatori,Eteläranta,Erottaja,Ylioppilastalo,Lasipalatsi,Kiasma,Kansallismuseo,Hesperia,Ooppera,"
    "Töölön halli,Kansaneläkelaitos,Tilkka,Ruskeasuo",
    "30": "Eira,Tehtaankatu,Kaivopuisto,Olympiaterminaali,Eteläranta,Erottaja,Ylioppilastalo,Rautatientori",
    "55": "Rautatientori,Kaisaniemi,Pitkäsilta,Hakaniemi,Haapaniemi,Sörnäinen,Vallila,Kumpula,Arabia,Koskela",
    "500": "Munkkiniemi,Paciuksenkatu,Meilahti,Auroran sairaala,Linnanmäki,Brahenkenttä,Sörnäinen,Kalasatama,"
    "Kulosaari,Herttoniemi,Siilitie,Itäkeskus",
}
