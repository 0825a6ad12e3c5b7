import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** They take minutes each, in the long lane. */
const MINUTES = [
  'campaign/campaign',
  'fleet/losses',
  'fleet/pauses',
  'fleet/faults',
  'process/store-kills',
  'export/store',
  'load/kill',
  'model/model',
  'journal/damaged-bytes',
  'histories/histories',
];

/** Vitest orders files by how long they took before. A fresh clone has had no run, and would begin these last: they are short texts. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((one, other) => rank(one) - rank(other));
  }
}

function rank({ moduleId }: TestSpecification): number {
  return MINUTES.some((name) => moduleId.includes(`/test/${name}.`)) ? 0 : 1;
}
