"""Importers turn what others wrote into recordings under known evidence names; they know no facts."""
