"""Political values in gendered Czech (Al Ali and Libovický 2024)."""
