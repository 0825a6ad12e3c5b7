import { dayOf, type Json } from './made-up-health.ts';
import { madeUpMeals } from './made-up-meals.ts';
import { EVENT_NAMES, madeUpSeries, type Sample } from './made-up-series.ts';
import { madeUpSummaries } from './made-up-summaries.ts';
import type { ResolvedSandbox } from './options.ts';
import type { Timers } from './timers.ts';
import type { User } from './users.ts';

/** How an outage of a provider shows: a 206 without its items, or 200 without them and a status of its pulls. */
export type Outage = 'partial' | 'failure' | 'not_pulled';

/** After so long the corrections are made. */
export const CORRECTED_AFTER_MS = 3_600_000;

/** The last time of a calendar. */
const LAST_MS = 8e15;

/** Inclusive bounds, milliseconds since the epoch; of summaries other than meals their days count. */
export interface Range {
  readonly startMs: number;
  readonly endMs: number;
  readonly provider?: string | undefined;
}

/** Health data of all users, made when it is asked for. */
export class HealthData {
  /** Set by tests: the providers that do not answer. */
  readonly outages = new Map<string, Outage>();
  /** Set by tests: items and samples that the providers have removed. */
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
  *summaries(resource: string, user: User, { startMs, endMs, provider }: Range): Generator<Json> {
    const { isCorrected: corrected } = this;
    const days = { firstDay: dayOf(startMs), lastDay: dayOf(Math.min(endMs, LAST_MS)) };
    const items =
      resource === 'meal'
        ? madeUpMeals(this.#options, { user: user.id, providers: user.sources, startMs, endMs, provider })
        : madeUpSummaries(this.#options, resource, { user, ...days, provider, corrected });
    for (const item of items as Generator<Json>)
      if (this.#isThere(resource, user, providerOf(item)) && !this.hasVanished(resource, item)) yield item;
  }

  /** Samples of a series in order of time, from a place on. */
  *samples(resource: string, user: User, range: Range, from = 0): Generator<Sample> {
    const query = { user, ...range, from, corrected: this.isCorrected };
    for (const sample of madeUpSeries(this.#options, resource, query))
      if (this.#isThere(resource, user, sample.provider) && !this.hasVanished(resource, sample.json))
        yield sample;
  }

  /** Whether an answer lacks what a provider should have given. */
  isPartial(user: User, provider: string | undefined): boolean {
    return user.sources.some((name) => (provider ?? name) === name && this.outages.get(name) === 'partial');
  }

  #isThere(resource: string, user: User, provider: string): boolean {
    if (this.outages.has(provider)) return false;
    return this.#options.data === 'ready' || user.pulled.has(pulledKey(provider, resource));
  }
}

/** Names in introspect, where they are others than in addresses: there they are as in event types. */
export function pulledKey(provider: string, resource: string): string {
  return `${provider} ${EVENT_NAMES[resource] ?? resource}`;
}

function providerOf(item: Json): string {
  const { provider, slug } = Object(item['source']) as { provider?: string; slug?: string };
  return provider ?? slug ?? '';
}
