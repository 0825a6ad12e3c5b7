import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Route } from '../../../src/core/route.ts';
import { Comparison, fatesBy } from '../../../src/deliver/routes/compare.ts';
import { explain, renderExplanation, renderRoutes } from '../../../src/deliver/routes/explain.ts';
import { compileRoutes } from '../../../src/deliver/routes/table.ts';

const to = (sink: string, destination: string | null = null) => ({ sink, destination });
const ROUTES: readonly Route[] = [
  { match: ['labtest.', 'lab_report.'], to: [to('hubs', 'labs'), to('archive')] },
  { match: ['daily.data.meal'], to: [to('hubs', 'meals')] },
  { match: ['*'], to: [to('archive')] },
];
const table = compileRoutes(ROUTES);

describe('the route table', () => {
  it.each([
    ['labtest.order.created', 0, 'labtest.'],
    ['lab_report.parsing_job.created', 0, 'lab_report.'],
    ['daily.data.meals', 1, 'daily.data.meal'],
    ['labtest', 2, '*'],
    ['LABTEST.order', 2, '*'],
    ['', 2, '*'],
    ['__proto__', 2, '*'],
  ])('sends %j to route %d', (type, index, match) => {
    expect(table.routesFor(type)).toEqual({ index, match, targets: ROUTES[index]?.to });
  });

  it('says when nothing matches', () => {
    expect(compileRoutes([]).routesFor('a')).toEqual({ index: null, match: null, targets: [] });
  });

  it('answers with the same object for the same type', () => {
    expect(table.routesFor('daily.x')).toBe(table.routesFor('daily.x'));
  });

  it('always agrees with the definition: the first route with a matching prefix', () => {
    const part = fc.constantFrom('a', 'b', '.', '*', 'ab');
    const prefix = fc.oneof(
      fc.constant('*'),
      fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('')),
    );
    const routes = fc.array(
      fc.array(prefix, { minLength: 1, maxLength: 2 }).map((match) => ({ match, to: [] })),
    );
    const type = fc.array(part, { maxLength: 4 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(routes, fc.array(type), (rules, types) => {
        const compiled = compileRoutes(rules);
        for (const each of types) {
          const index = rules.findIndex(({ match }) =>
            match.some((start) => start === '*' || each.startsWith(start)),
          );
          expect(compiled.routesFor(each).index).toBe(index === -1 ? null : index);
        }
      }),
    );
  });

  it('forgets rather than grows, and still decides right', () => {
    const many = compileRoutes(ROUTES);
    for (let n = 0; n < 10_000; n++) expect(many.routesFor(`labtest.${n}`).index).toBe(0);
    expect(many.routesFor(`labtest.${'x'.repeat(100_000)}`).index).toBe(0);
  });
});

describe('explain', () => {
  it('tells the rule, the targets, and why the others do not count', () => {
    expect(explain(table, 'labtest.order.created')).toEqual({
      type: 'labtest.order.created',
      rule: { index: 0, match: 'labtest.' },
      targets: [to('hubs', 'labs'), to('archive')],
      skipped: [
        { index: 1, match: ['daily.data.meal'], reason: 'decided', matches: false },
        { index: 2, match: ['*'], reason: 'decided', matches: true },
      ],
      event: null,
    });
    expect(explain(table, 'x').skipped[0]).toMatchObject({ index: 0, reason: 'no-match', matches: false });
  });

  it('adds the key and the size of an event', () => {
    const event = { type: 'x', team: 't', user: 'u', clientUser: null, bytes: 2500 };
    const explanation = explain(table, event);
    expect(explanation.event).toEqual({ team: 't', user: 'u', clientUser: null, bytes: 2500, key: 'u' });
    expect(renderExplanation(explanation)).toContain('2500 bytes (2.4 KiB)');
  });

  it('can say nowhere', () => {
    const nowhere = explain(compileRoutes(ROUTES.slice(0, 1)), 'x');
    expect(nowhere).toMatchObject({ rule: null, targets: [] });
    expect(renderExplanation(nowhere)).toContain('none: the event goes nowhere');
  });
});

describe('the table as text', () => {
  it('is aligned, a line for each target', () => {
    expect(renderRoutes([...ROUTES.slice(0, 1), { match: ['raw.'], to: [] }])).toBe(
      [
        'ROUTE      MATCH                  SINK       DESTINATION',
        'routes[0]  labtest., lab_report.  hubs       labs',
        '                                  archive',
        'routes[1]  raw.                   (nowhere)',
        '           (anything else)        (nowhere)',
      ].join('\n'),
    );
  });
});

describe('a comparison', () => {
  it('takes less of an event for another fate', () => {
    const fields = { type: 'event_type', team: 'team_id', user: 'user_id', clientUser: 'client_user_id' };
    const routes = (...redact: string[]) => [
      { match: ['*'], to: [{ sink: 'a', destination: null, redactions: [{ redact, fields }] }] },
    ];
    const [one, other] = [fatesBy(compileRoutes(routes('/x'))), fatesBy(compileRoutes(routes('/x', '/y')))];
    const comparison = new Comparison();
    comparison.add({ type: 't', id: '1' }, one('t'), one('t'));
    comparison.add({ type: 't', id: '2' }, one('t'), other('t'));
    expect(comparison).toMatchObject({ events: 2, changed: 1 });
    expect(comparison.moves()).toMatchObject([{ from: ['a (/x as null)'], to: ['a (/x, /y as null)'] }]);
  });
});
