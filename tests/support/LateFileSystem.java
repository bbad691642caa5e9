package fastwin;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * The local disk with the manners of some stores of objects, by two properties of the JVM.
 *
 * A listing lacks the files that are younger than fastwin.late.ms. With fastwin.late.refuse, no file can be replaced: it
 * can be written only where none is. It sets no permissions, for which Hadoop would start a process for each file.
 */
public class LateFileSystem extends RawLocalFileSystem {
  private static final URI NAME = URI.create("late:///");

  public String getScheme() {
    return "late";
  }

  public URI getUri() {
    return NAME;
  }

  public void setPermission(Path path, FsPermission permission) {
  }

  public FileStatus[] listStatus(Path path) throws IOException {
    long late = Long.getLong("fastwin.late.ms", 0L).longValue();
    FileStatus[] found = super.listStatus(path);
    List seen = new ArrayList();
    for (int i = 0; i < found.length; i++) {
      if (late == 0 || found[i].isDirectory() || found[i].getModificationTime() < System.currentTimeMillis() - late) {
        seen.add(found[i]);
      }
    }
    return (FileStatus[]) seen.toArray(new FileStatus[seen.size()]);
  }

  public boolean rename(Path from, Path to) throws IOException {
    refuse(to);
    return super.rename(from, to);
  }

  public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int bufferSize,
      short replication, long blockSize, Progressable progress) throws IOException {
    refuse(path);
    return super.create(path, overwrite, bufferSize, replication, blockSize, progress);
  }

  private void refuse(Path path) throws IOException {
    File file = pathToFile(path);
    if (Boolean.getBoolean("fastwin.late.refuse") && file.isFile()) {
      throw new FileAlreadyExistsException("this store replaces no file: " + file);
    }
  }
}
