import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import type { Config } from '../config/config.ts';
import { explain, type ExplainedEvent, renderExplanation } from '../deliver/routes/explain.ts';
import { compileRoutes } from '../deliver/routes/table.ts';
import { unknownNames } from '../config/redactions.ts';
import { note, printReport, usageError, type Io } from './io.ts';
import { CONFIG, configOf, prefixWarnings, withRedactions } from './config-options.ts';
import { commandOf, type OptionsOf, readAs } from './options.ts';

const HELP = `
Examples:
  millrace route daily.data.meal.created
  millrace route labtest.order.updated lab_report.parsing_job.created --json
  millrace route --event event.json

--event FILE has the JSON that a sender would post. For a target that redacts, the remaining parts of the event are shown. Nothing is
sent.

Exit codes: 0 explained (also when the answer is "nowhere"), 2 usage or config.`;

const OPTIONS = {
  '--event <file>': 'read the type, the ids and the size from an event',
  ...CONFIG,
  '--json': 'print one JSON document: {"results":[{type, rule, targets, skipped, event}]}',
};
type Options = OptionsOf<typeof OPTIONS>;

export function routeCommand(io: Io): Command {
  return commandOf('route', OPTIONS, HELP)
    .description('explain where events go: which rule decides, which sinks and destinations, by which key')
    .argument('[type...]', 'event types, such as daily.data.meal.created')
    .action(async (types: string[], options: Options) => {
      if (types.length === 0 && options.event === undefined)
        throw usageError('name at least one event type, or give --event FILE');
      const { config, warnings } = await withRedactions(configOf(options, io), io);
      const table = compileRoutes(config.routes);
      const subjects = [
        ...types,
        ...(options.event === undefined ? [] : [readEvent(options.event, config.envelope)]),
      ];
      const results = subjects.map((subject) => explain(table, subject));
      for (const warning of [...warnings, ...unknownNames(config.routes), ...(await prefixWarnings(config))])
        note(io, `warning: ${warning}`);
      printReport(io, options, { results }, () => results.map(renderExplanation).join('\n\n'));
    });
}

/** @throws MillraceError usage when the file is not an event */
function readEvent(file: string, fields: Config['envelope']): ExplainedEvent {
  const body = readAs('--event', file, (path) => readFileSync(path));
  const value = readAs('--event', file, () => JSON.parse(body.toString('utf8')) as unknown);
  const field = (name: string): string | null => {
    const found = new Map(Object.entries(value ?? {})).get(name) as unknown;
    return typeof found === 'string' ? found : null;
  };
  const type = field(fields.type);
  if (type === null) throw usageError(`--event ${file}: has no text in its field ${fields.type}`);
  return {
    type,
    team: field(fields.team),
    user: field(fields.user),
    clientUser: field(fields.clientUser),
    bytes: body.length,
  };
}
