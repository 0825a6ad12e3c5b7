import { describe, expect, it } from 'vitest';
import { unknownPrefixes } from '../../src/config/routes.ts';
import { failure, parse } from './helpers.ts';

const SINKS = 'sinks: { archive: { type: files }, hubs: { type: event-hubs } }\n';

describe('routes in the config', () => {
  it('take one or several prefixes and targets; a target is split at its first colon', () => {
    const { config, warnings } = parse(`${SINKS}routes:
  - { match: [labtest., lab_report.], to: ["hubs:labs:eu", archive] }
  - { match: "*", to: archive }`);
    expect(config.routes).toEqual([
      {
        match: ['labtest.', 'lab_report.'],
        to: [
          { sink: 'hubs', destination: 'labs:eu' },
          { sink: 'archive', destination: null },
        ],
      },
      { match: ['*'], to: [{ sink: 'archive', destination: null }] },
    ]);
    expect(warnings).toEqual([]);
  });

  it('send everything to every sink when absent', () => {
    const [route] = parse(SINKS).config.routes;
    expect(route?.match).toEqual(['*']);
    expect(route?.to.map(({ sink }) => sink)).toEqual(['archive', 'hubs']);
  });

  it.each([
    [
      '{ match: "*", to: archiv }',
      'routes[0].to[0]: names the sink "archiv", which is not configured; did you mean "archive"?',
    ],
    [
      '{ match: "*", to: kafka }',
      'names the sink "kafka", which is not configured; configured are: archive, hubs',
    ],
    ['{ match: "*", to: [archive, archive] }', 'routes[0].to[1]: names "archive" a second time'],
    ['{ match: "*", to: "archive:" }', 'routes[0].to[0]: names no destination after the colon'],
    ['{ match: [], to: archive }', 'routes[0].match: must name at least one prefix'],
    ['{ match: "", to: archive }', 'routes[0].match[0]: must not be empty'],
    ['{ match: "*" }', 'routes[0].to: must be a sink'],
    ['archive', 'routes[0]: must be a mapping with match and to'],
  ])('refuse %s', (route, message) => {
    expect(failure(`${SINKS}routes: [${route}]`).lines.join('\n')).toContain(message);
  });

  it('warn about rules that can never match', () => {
    const { warnings } = parse(`${SINKS}routes:
  - { match: daily., to: archive }
  - { match: [daily.data.meal., provider.], to: hubs }
  - { match: "*", to: archive }
  - { match: labtest., to: hubs }`);
    expect(warnings).toEqual([
      expect.stringContaining(
        'routes[1].match[0]: can never match: routes[0] takes all of "daily.data.meal." first',
      ),
      expect.stringContaining('routes[3]: can never match: routes[2] takes all its types first'),
    ]);
  });

  it('warn when some events go nowhere', () => {
    const { warnings } = parse(`${SINKS}routes: [{ match: raw., to: [] }, { match: daily., to: archive }]`);
    expect(warnings).toEqual([
      expect.stringContaining('routes[0].to: is empty: what it matches goes nowhere'),
      expect.stringContaining('routes: does not end with "*": events that match no rule go nowhere'),
    ]);
  });
});

it.each([
  ['labtests.', 'labtest.'],
  ['Daily.', 'daily.'],
  ['labtest', 'labtest.'],
  ['labtests.order.created', 'labtest.order.created'],
  ['labtest.ordr.', 'labtest.order.'],
  ['labtest.order', 'labtest.order.'],
  ['lab_report.parsing_jobs.created', 'lab_report.parsing_job.created'],
  ['*', null],
  ['labtest.', null],
  ['labtest.order.created', null],
  ['daily.data.meal', null],
  ['billing.invoice.', null],
  ['x.', null],
])('the prefix %s probably means %s', (prefix, meant) => {
  const routes = [{ match: [prefix], to: [] }];
  const said = `routes[0]: "${prefix}" matches no documented event type; did you mean "${meant}"?`;
  expect(unknownPrefixes(routes)).toEqual(meant === null ? [] : [said]);
  expect(unknownPrefixes(routes, [`${prefix}.seen`])).toEqual([]);
});
