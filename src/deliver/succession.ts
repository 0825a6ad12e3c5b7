import { MillraceError } from '../core/errors.ts';
import type { PlannedSinks } from './live-sinks.ts';

/**
 * Who continues for whom, by the name of the one who goes: `blocked` where the heir has had a place of its own, so that it
 * cannot take over another.
 */
export function successions(
  { sinks }: PlannedSinks,
  going: readonly string[],
  known: ReadonlySet<string>,
): { readonly heirs: ReadonlyMap<string, string>; readonly blocked: ReadonlyMap<string, string> } {
  const heirs = new Map<string, string>();
  const blocked = new Map<string, string>();
  for (const [name, { continues }] of sinks)
    if (continues !== null && going.includes(continues))
      (known.has(name) ? blocked : heirs).set(continues, name);
  return { heirs, blocked };
}

/** @throws MillraceError naming the sinks that events wait for, how many, and what can be done */
export function refuseWaiting(
  waiting: ReadonlyMap<string, number>,
  blocked: ReadonlyMap<string, string>,
): void {
  const lines = [...waiting].flatMap(([sink, count]) => {
    if (count === 0) return [];
    const heir = blocked.get(sink);
    const why =
      heir === undefined
        ? 'it is no longer in the config'
        : `sinks.${heir}.continues cannot take them over, because ${heir} has its own position in the journal`;
    return [
      `sinks.${sink}: ${count} events wait for it, and ${why}. Put it back, let a new sink continue for it ` +
        `(sinks.<new>.continues: ${sink}), or make dead letters of them (millrace sink drop ${sink})`,
    ];
  });
  if (lines.length > 0) throw new MillraceError('sink_waited_for', lines.join('\n'));
}
