import type { Command } from 'commander';
import { EXIT } from '../core/errors.ts';
import type { SchemaType } from '../core/schema.ts';
import { changesSince, compareReports, type TypeDrift } from '../observe/schema/compare.ts';
import { inColumns } from '../lib/columns.ts';
import { visible } from '../lib/visible.ts';
import { changesToDocumented } from '../observe/schema/documented.ts';
import { hasColours, styled, type Style, note, print, usageError, type Io } from './io.ts';
import { KEY_OPTIONS } from './key-options.ts';
import { commandOf, instant, type OptionsOf, readBy } from './options.ts';
import { onlyTypes, readReport, seenOf, type SeenOptions } from './seen.ts';

const DOCUMENTED = 'service-spec';

const DIFF_HELP = `
Examples:
  millrace schema diff --since 2026-11-21
  millrace schema --json > seen.json; millrace schema diff --against seen.json   a week later
  millrace schema diff --against service-spec
  millrace schema diff --from ./data/archive --against seen.json --json

+ is new, - was not seen any more, ~ has values of another kind. service-spec is what the service documents for the types of the
built-in tables: there + is not documented, and - is documented and not seen, which alone is no drift.

Exit codes: 0 no drift, 1 failed, 2 usage, 4 drift.`;

const OPTIONS = {
  '--since <date>': readBy(instant, 'compare with the time before: a day or time, ISO 8601, UTC'),
  '--against <what>': `a file of \`millrace schema --json\`, or ${DOCUMENTED}`,
  '--from <place>': 'instead of the receiver: an archive, or a file of `millrace schema --json`',
  '--config <file>': 'the config of the receiver',
  '--json': 'print one JSON document: {drift: [{type, is, new, gone, kinds}]}',
  ...KEY_OPTIONS,
};
type Options = OptionsOf<typeof OPTIONS>;

/** `millrace schema [type]` without a dialect: types and fields of accepted events. */
export async function printSeen(
  type: string | undefined,
  options: SeenOptions & { readonly json: boolean | undefined },
  io: Io,
): Promise<void> {
  const report = await seenOf(options, io);
  const types = onlyTypes(report, type === undefined ? [] : [type]);
  if (options.json === true) return print(io, JSON.stringify({ ...report, types }));
  if (types.length === 0) note(io, 'no events were seen yet');
  else if (types.length === 1 || type !== undefined) print(io, types.map(textOf).join('\n\n'));
  else {
    const rows = types.map((each) => {
      const fields = `${each.fields.length}${each.full ? '+' : ''}`;
      return [each.type, String(each.events), fields, day(each.first_seen), day(each.last_seen)];
    });
    print(io, inColumns([['TYPE', 'EVENTS', 'FIELDS', 'FIRST SEEN', 'LAST SEEN'], ...rows]));
  }
}

function textOf(seenType: SchemaType): string {
  const { type, events, looked_at: looked, first_seen: first, last_seen: last, full, fields } = seenType;
  const seen = looked < events ? `${events} events, ${looked} looked at` : `${events} events`;
  const more = full ? '; there are more fields than are remembered' : '';
  const rows = fields.map((field) => [
    field.path,
    Object.keys(field.kinds).join(', '),
    `${Math.round(field.share * 1000) / 10} %`,
    day(field.first_seen),
    day(field.last_seen),
  ]);
  const table = inColumns([['FIELD', 'KINDS', 'IN', 'FIRST SEEN', 'LAST SEEN'], ...rows]);
  return `${type}: ${seen}, first ${day(first)}, last ${day(last)}${more}\n${table}`;
}

/** To the second. */
function day(at: string): string {
  return `${at.slice(0, 19)}Z`;
}

export function schemaDiffCommand(io: Io): Command {
  return commandOf('diff', OPTIONS, DIFF_HELP)
    .description('show how events have changed: new fields, fields that are gone, other kinds of values')
    .argument('[type]', 'only event types that begin so')
    .action(async (type: string | undefined, _: unknown, self: Command) => {
      // Commander gives options that `schema` has too to `schema`.
      const options = self.optsWithGlobals<Options>();
      const drift = await driftOf(options, io);
      const found = drift.filter((each) => type === undefined || each.type.startsWith(type));
      if (options.json === true) print(io, JSON.stringify({ drift: found }));
      else if (found.length === 0) note(io, 'no drift');
      else print(io, render(found, options.against === DOCUMENTED, hasColours(io.stdout, io.env)));
      // A documented field may be absent.
      const beyond = found.filter(({ new: added, kinds }) => added.length + kinds.length > 0);
      const isDrift = (options.against === DOCUMENTED ? beyond : found).length > 0;
      if (isDrift) io.setExit(EXIT.difference);
    });
}

async function driftOf(options: Options, io: Io): Promise<TypeDrift[]> {
  const { since, against } = options;
  if ((since === undefined) === (against === undefined))
    throw usageError(`say --since DATE, or --against with a file or ${DOCUMENTED}`);
  const before = against === undefined || against === DOCUMENTED ? null : readReport(against);
  const report = await seenOf(options, io);
  if (since !== undefined) return changesSince(report, new Date(since).toISOString());
  return before === null ? changesToDocumented(report) : compareReports(before, report);
}

function render(drift: readonly TypeDrift[], isDocumented: boolean, isColoured: boolean): string {
  const line = (style: Style, text: string): string => styled(style, visible(text), isColoured);
  return drift
    .flatMap((type) => {
      if (type.is === 'new')
        return [line('green', `+ ${type.type}  first seen ${day(type.first_seen ?? '')}`)];
      if (type.is === 'gone') return [line('red', `- ${type.type}  last seen ${day(type.last_seen ?? '')}`)];
      return [
        `  ${type.type}`,
        ...type.new.map(({ path, kinds, first_seen: first }) =>
          line(
            'green',
            `+   ${path}  ${kinds.join(', ')}${isDocumented ? '' : `  first seen ${day(first ?? '')}`}`,
          ),
        ),
        ...type.gone.map(({ path, kinds, last_seen: last }) =>
          line('red', `-   ${path}  ${kinds.join(', ')}${last === null ? '' : `  last seen ${day(last)}`}`),
        ),
        ...type.kinds.map(({ path, before, now, since }) =>
          line(
            'yellow',
            `~   ${path}  ${before.join(', ')} -> ${now.join(', ')}${since === null ? '' : `  since ${day(since)}`}`,
          ),
        ),
      ];
    })
    .join('\n');
}
