import { JsonFault, membersOf, OPEN_BRACE, skipValue } from '../../lib/json-text.ts';

/**
 * The documents of an answer that holds several by name under one member: `{"user_id":1,"provider":{"a":{"x":2}}}` is
 * `{"user_id":1,"provider":"a","x":2}`. An answer that is one document already, or is not well, comes back as it is:
 * whoever shapes it says what is wrong.
 */
export function unfold(answer: Buffer, member: string): readonly Buffer[] {
  try {
    return documentsOf(answer, member) ?? [answer];
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
    return [answer];
  }
}

/** Null when the member holds no objects. @throws JsonFault */
function documentsOf(answer: Buffer, member: string): Buffer[] | null {
  if (skipValue(answer, 0, 1) !== answer.length) return null;
  let folded = -1;
  const beside: Buffer[] = [];
  for (const { name, value } of membersOf(answer, 0)) {
    const isMember = JSON.parse(answer.toString('utf8', ...name)) === member;
    if (isMember) [folded] = value;
    else beside.push(answer.subarray(name[0], value[1]));
  }
  if (folded < 0 || answer[folded] !== OPEN_BRACE) return null;
  const documents: Buffer[] = [];
  for (const { name, value } of membersOf(answer, folded)) {
    if (answer[value[0]] !== OPEN_BRACE) return null;
    const own = answer.subarray(value[0] + 1, value[1] - 1);
    const parts = [...beside, Buffer.from(`${JSON.stringify(member)}:${answer.toString('utf8', ...name)}`)];
    if (own.toString().trim() !== '') parts.push(own);
    documents.push(Buffer.from(`{${parts.join(',')}}`));
  }
  return documents;
}
