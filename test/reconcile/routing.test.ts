import { describe, expect, it } from 'vitest';
import type { JournalAccount } from '../../src/core/journal.ts';
import { parseTarget, type Route } from '../../src/core/route.ts';
import { Routing, type SinksFor } from '../../src/reconcile/routing.ts';
import { parseWindow, type Window } from '../../src/reconcile/window.ts';
import { compileRoutes } from '../../src/route/table.ts';

const to = (match: string, ...sinks: string[]): Route => ({ match: [match], to: sinks.map(parseTarget) });

const compile = (routes: readonly Route[]): SinksFor => {
  const table = compileRoutes(routes);
  return (type) => new Set(table.routesFor(type).targets.map(({ sink }) => sink));
};

const NOTHING: JournalAccount = {
  firstSeq: 1,
  lastSeq: 100,
  cursors: [],
  counts: [],
  countedSince: null,
  started: [],
  dropped: [],
  routes: null,
};

const head = (seq: number, type: string, only: readonly string[] | null = null) => ({ seq, type, only });

describe('Routing', () => {
  it('goes by the routes of now, and by what an event says of itself', () => {
    const routing = new Routing([to('daily.', 'a'), to('*', 'b:place')], NOTHING, compile);
    expect(routing.dueAt('a', head(1, 'daily.x'))).toBe('due');
    expect(routing.dueAt('b', head(1, 'daily.x'))).toBe('not_due');
    expect(routing.dueAt('b', head(1, 'other'))).toBe('due');
    expect(routing.dueAt('b', head(1, 'daily.x', ['b:place']))).toBe('due');
    expect(routing.dueAt('a', head(1, 'daily.x', []))).toBe('not_due');
  });

  it('holds nothing against a sink that began later', () => {
    const routing = new Routing([to('*', 'a')], { ...NOTHING, started: [['a', 10]] }, compile);
    expect(routing.dueAt('a', head(10, 'x'))).toBe('not_due');
    expect(routing.dueAt('a', head(11, 'x'))).toBe('due');
    expect(routing.takesAll('a', [to('*', 'a')])).toBe(false);
  });

  it('is sure only where the routes before and after a change agree', () => {
    const past = [{ upTo: 50, before: [to('*', 'a')] }];
    const routes = [to('daily.', 'a'), to('*', 'b')];
    const routing = new Routing(
      routes,
      { ...NOTHING, routes: JSON.stringify({ past, changes: [] }) },
      compile,
    );
    expect(routing.dueAt('a', head(50, 'daily.x'))).toBe('due');
    expect(routing.dueAt('a', head(50, 'other'))).toBe('perhaps');
    expect(routing.dueAt('b', head(50, 'other'))).toBe('perhaps');
    expect(routing.dueAt('b', head(51, 'other'))).toBe('due');
    expect(routing.dueAt('a', head(51, 'other'))).toBe('not_due');
  });

  it('knows which sink has everything', () => {
    const routes = [to('daily.', 'a', 'b'), to('*', 'a')];
    const routing = new Routing(routes, NOTHING, compile);
    expect(routing.takesAll('a', routes)).toBe(true);
    expect(routing.takesAll('b', routes)).toBe(false);
    expect(routing.takesAll('a', [to('daily.', 'a')])).toBe(false);
  });
});

const iso = (ms: number): string => new Date(ms).toISOString().slice(0, 16);

const shown = ({ since, until }: Window): string => `${iso(since)} ${iso(until)}`;

describe('parseWindow', () => {
  const now = Date.UTC(2026, 10, 21, 3, 15);

  it('is widened to whole hours, and the last 24 of them by default', () => {
    expect(shown(parseWindow(undefined, undefined, now))).toBe('2026-11-20T04:00 2026-11-21T04:00');
    expect(shown(parseWindow('2026-11-19T10:30', '2026-11-19T11:30+01:00', now))).toBe(
      '2026-11-19T10:00 2026-11-19T11:00',
    );
  });

  it('takes a day to its end, as replay and export do', () => {
    expect(shown(parseWindow('2026-11-19', '2026-11-19', now))).toBe('2026-11-19T00:00 2026-11-20T00:00');
  });

  it.each([
    ['soon', undefined],
    ['2026-13-01', undefined],
    ['2026-11-21', '2026-11-19'],
  ])('refuses %s to %s', (since, until) => {
    expect(() => parseWindow(since, until, now)).toThrow(/--since|--until/);
  });
});
