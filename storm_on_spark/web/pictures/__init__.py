"""Pictures as inline SVG: colours come from classes of the style sheet, so they follow light and dark."""
