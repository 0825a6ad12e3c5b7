import { Refusal } from './check.ts';
import { DAY_MS, type Json, type Range } from './made-up-health.ts';
import { madeUpMeals } from './made-up-meals.ts';
import { EVENT_NAMES, groupsOf, madeUpSeries, SERIES, type Sample } from './made-up-series.ts';
import { madeUpSummaries, SUMMARIES } from './made-up-summaries.ts';
import type { ResolvedSandbox } from './options.ts';
import type { Timers } from './timers.ts';
import type { User } from './users.ts';

/** How the outage of a provider shows: a 206 without its items, or 200 without them and its pulls have a status. */
export type Outage = 'partial' | 'failure' | 'not_pulled';

/** Samples on a day of a stream: one every five minutes. */
const STREAM_SAMPLES = 288;

/** Sandbox milliseconds from the start until corrections are made. */
export const CORRECTED_AFTER_MS = 3_600_000;

/** All that a pull brings, by the names in event types. */
export const RESOURCES: readonly string[] = [
  'meal',
  ...Object.keys(SUMMARIES),
  ...Object.keys(SERIES).map(eventName),
];

/** Health data of all users, made when it is asked for. */
export class HealthData {
  /** Set by tests: providers that do not answer. */
  readonly outages = new Map<string, Outage>();
  /** Set by tests: whether a provider has removed an item or a sample. */
  hasVanished: (resource: string, item: Json) => boolean = () => false;
  readonly #options: ResolvedSandbox;
  readonly #timers: Timers;
  readonly #correctedAt: number;

  constructor(options: ResolvedSandbox, timers: Timers) {
    this.#options = options;
    this.#timers = timers;
    this.#correctedAt = timers.clock.now() + CORRECTED_AFTER_MS;
  }

  get isCorrected(): boolean {
    return this.#timers.clock.now() >= this.#correctedAt;
  }

  /** Items of a summary, one by one: a range can be larger than memory. */
  *summaries(resource: string, user: User, range: Range): Generator<Json> {
    const items =
      resource === 'meal'
        ? madeUpMeals(this.#options, user, range)
        : madeUpSummaries(this.#options, resource, user, range, this.isCorrected);
    for (const item of items) {
      const { provider, slug } = Object(item['source']) as { provider?: string; slug?: string };
      if (this.#isThere(resource, user, provider ?? slug ?? '') && !this.hasVanished(resource, item))
        yield item;
    }
  }

  /** Samples of a series in order of time, from a place on. */
  *samples(resource: string, user: User, range: Range, from = 0): Generator<Sample> {
    for (const sample of madeUpSeries(this.#options, resource, user, range, from, this.isCorrected))
      if (this.#isThere(resource, user, sample.provider) && !this.hasVanished(resource, sample.json))
        yield sample;
  }

  /** The data of the events of a range: an item each, or a group of samples each. */
  eventsOf(resource: string, user: User, range: Range): Iterable<Json> {
    return Object.hasOwn(SERIES, resource)
      ? groupsOf(user, [...this.samples(resource, user, range)]).values()
      : this.summaries(resource, user, range);
  }

  /**
   * Samples of each series during a workout or a sleep.
   * @throws Refusal 404 when there is no such item
   */
  stream(resource: string, item: { user: User; day: number; id: string }, series: readonly string[]) {
    const { sinceMs, days } = this.#options;
    const startMs = sinceMs + item.day * DAY_MS;
    const items = [...this.summaries(resource, item.user, { startMs, endMs: startMs })];
    const found = items.find(({ id }) => id === item.id);
    if (found === undefined) throw new Refusal(404, 'Not Found');
    // The first sleep begins before the first day.
    const around = { sinceMs: sinceMs - DAY_MS, days: days + 2, samplesPerDay: STREAM_SAMPLES };
    const plan = { ...this.#options, ...around };
    const { provider } = found['source'] as { provider: string };
    const user = { ...item.user, sources: [provider] };
    const timeOf = (...names: string[]): number =>
      Date.parse(String(names.map((name) => found[name]).find(Boolean)));
    const range = {
      startMs: timeOf('time_start', 'bedtime_start'),
      endMs: timeOf('time_end', 'bedtime_stop'),
    };
    return series.map((name) => {
      const samples = madeUpSeries(plan, name, user, range, 0, this.isCorrected);
      return [name, [...samples].map(({ json }) => json)] as const;
    });
  }

  /** Whether an answer lacks what a provider should have given. */
  isPartial(user: User, provider: string | undefined): boolean {
    return user.sources.some((name) => (provider ?? name) === name && this.outages.get(name) === 'partial');
  }

  #isThere(resource: string, user: User, provider: string): boolean {
    if (this.outages.has(provider)) return false;
    return this.#options.data === 'ready' || user.pulled.has(pulledKey(provider, eventName(resource)));
  }
}

/** @param resource its name in addresses */
export function eventName(resource: string): string {
  return EVENT_NAMES[resource] ?? resource;
}

/** @param resource its name in event types */
export function pulledKey(provider: string, resource: string): string {
  return `${provider} ${resource}`;
}
