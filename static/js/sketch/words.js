// What a query of a sketch asks, in words. Pure.

import { label, number } from "../format.js";

const OF_STATISTIC = { mean: "mean", std: "standard deviation", min: "least", max: "largest", sum: "sum", count: "count" };

/** Return what a plan asks: "mean of temp, histogram of wind in an area, in the last 2 h". */
export function sketchText(plan) {
  const asked = [...new Set(plan.ask.map(askText))].join(", ");
  const place = plan.polygon ? " in a polygon" : plan.area ? " in an area" : "";
  const other = plan.other ? "; against another place or time" : "";
  return `${asked}${place}${timesText(plan.time ?? {})}${other}`;
}

function askText({ question, features = [], statistic, every, by = [] }) {
  const names = features.map((name) => label(name).toLowerCase());
  const of = names.length === 0 ? "" : ` of ${names.length > 3 ? `${names.length} features` : names.join(", ")}`;
  if (question === "select") return `statistics${of || " of all features"}`;
  if (question === "series") return `course${of} by ${every}`;
  if (question === "cells") return `${OF_STATISTIC[statistic] ?? statistic}${of} by cell`;
  if (question === "contrast") return `contrast of the ${OF_STATISTIC[statistic] ?? statistic}${of}`;
  if (question === "regression") return `${names[0]} by ${by.map((name) => label(name).toLowerCase()).join(", ")}`;
  return `${OF_STATISTIC[question] ?? question}${of || " of elements"}`;
}

function timesText({ ranges, last_s: lastS, daily }) {
  const parts = [];
  if (ranges?.length === 1) parts.push([ranges[0].from && `from ${dayOf(ranges[0].from)}`, ranges[0].to && `until ${dayOf(ranges[0].to)}`].filter(Boolean).join(" "));
  if (ranges?.length > 1) parts.push(`in ${ranges.length} ranges of time`);
  if (lastS) parts.push(`in the last ${lengthText(lastS)}`);
  if (daily) parts.push(`from ${daily.from} to ${daily.to} daily`);
  return parts.map((part) => `, ${part}`).join("");
}

function dayOf(text) {
  return /T00:00(:00)?/.test(text) ? text.slice(0, 10) : text.slice(0, 16).replace("T", " ");
}

function lengthText(seconds) {
  const [unit, each] = [["days", 86_400], ["h", 3600], ["min", 60]].find(([, length]) => seconds >= length && seconds % length === 0) ?? ["s", 1];
  return `${number(seconds / each, 1)} ${unit}`;
}
